import java.util.Set;
import java.util.TreeSet;

import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/** Prints the beans of a Kafka with their attributes, a line for each attribute: the name of the bean, a tab, the attribute. */
public class MBeans {
    public static void main(String[] arguments) throws Exception {
        String url = "service:jmx:rmi:///jndi/rmi://127.0.0.1:" + arguments[0] + "/jmxrmi";
        try (JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(url))) {
            MBeanServerConnection server = connector.getMBeanServerConnection();
            Set<String> lines = new TreeSet<>();
            for (ObjectName name : server.queryNames(new ObjectName("kafka.*:*"), null)) {
                for (MBeanAttributeInfo attribute : server.getMBeanInfo(name).getAttributes()) {
                    lines.add(name + "\t" + attribute.getName());
                }
            }
            lines.forEach(System.out::println);
        }
    }
}
